"""An agent that makes several attempts, and revises, recombines and refines them (SE-Agent)."""
