"""Recipes as commands name them."""

from images.errors import NoSuchRecipeError
from images.recipe import inherit
from images.recipe.recipe import Recipe
from images.values import files


def load_recipe(name: str, profile: str | None) -> Recipe:
    """The recipe of that name or path, with another profile if one is given.

    Raises:
        NoSuchRecipeError: it is not there. StoreError: nobody can tell. images.values.strict.FaultsError: with all
            its faults.
    """
    path = inherit.find(name)
    if not files.is_file(path):
        raise NoSuchRecipeError(
            f"there is no recipe {name}: shipped are {', '.join(inherit.shipped())}; "
            "a recipe of your own is the path of its file, like ./mine.yaml"
        )
    recipe = inherit.load(path)
    return recipe.model_copy(update={"profile": profile}) if profile else recipe
