"""What can be said of an image without opening it: files, packages, licences, origin. Forms: `docs/manifest.md`."""
