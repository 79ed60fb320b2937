"""What an image is: manifest, site bundle, signatures and the keys that are trusted, measures, differences."""
