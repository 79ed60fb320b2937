"""Pure: claims, decisions, boot phases; the interfaces that the planes bring with them."""
