"""The DuckDB engine: the relational plan as a script of SQL steps.

Payloads never pass through DuckDB: the `block` column holds handles into an arena, and kernels are Arrow scalar
functions over handles. Relations of scalars use plain columns and plain SQL.
"""
