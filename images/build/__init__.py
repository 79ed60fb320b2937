"""From a recipe to a signed image: pipeline, steps, gates, documents. The service never imports it."""
