"""Classification and regression trees (CART)."""
