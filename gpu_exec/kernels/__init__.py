"""Kernels: plain functions on stacked blocks, which know nothing of keys or devices.

expression    scalar expressions, compiled to NumPy
contract      sums of products of two operands, through BLAS
join          any combine and reduce: picks `contract` where it applies
"""
