"""Pure: claims, decisions, boot phases; the interfaces that processes bring with them."""
