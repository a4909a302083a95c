"""The command `epicycle play`: an agent in an environment, or a game in the terminal."""
