"""One module a language, whose function ``test`` runs the tests of an exercise."""
