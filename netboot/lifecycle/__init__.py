"""Pure: claims, decisions, boot phases; the interfaces that servers bring with them."""
