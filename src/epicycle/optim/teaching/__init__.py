"""The teaching kit, on the same losses, penalties and objectives: conjugates, KKT conditions, games, gradients."""
