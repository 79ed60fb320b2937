"""The build pipeline and the artifact store: recipe, steps, manifest, store. No web, no cluster."""
