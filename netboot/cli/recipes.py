"""Recipes as commands name them."""

from images.errors import NoSuchRecipeError
from images.recipe import inherit
from images.recipe.recipe import Recipe
from images.values import files
from netboot.cli.given_files import look_at


def load_recipe(name: str, profile: str | None) -> Recipe:
    """The recipe of that name or path, with another profile if one is given.

    Raises:
        NoSuchRecipeError: it is not there. StoreError, ClientError: it cannot be read.
        images.values.strict.FaultsError: with all its faults.
    """
    path = inherit.find(name)
    if files.look(path) is None:
        raise NoSuchRecipeError(
            f"there is no recipe {name}: shipped are {', '.join(inherit.shipped())}; "
            "a recipe of your own is the path of its file, like ./mine.yaml"
        )
    look_at(path, "name the file of a recipe, or one that is shipped")
    recipe = inherit.load(path)
    return recipe.model_copy(update={"profile": profile}) if profile else recipe
