"""The executor of einsql: exchange program and batches in, batches out.

Internal to the einsql distribution; no promises. It knows what a program is made of (`planner.program`, types,
placements, scalar expressions) and none of the planner's passes; what it counts it counts itself. Flow of one run:

    structures, counts = key_phase(program, keys)      keys only: which rows meet, and on which device
    result, metrics    = execute(program, structures, tables)
"""

part_of = "einsql"
