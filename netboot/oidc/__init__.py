"""People who prove themselves by OpenID Connect: what an issuer says, whom its tokens mean, and how one logs in."""
