"""Lend one model to one sandbox over a unix socket: count and record calls, serve recorded replies, enforce limits."""
