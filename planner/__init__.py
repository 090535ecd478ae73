"""The pure planner of einsql: einsum graph in, exchange program out.

Internal to the einsql distribution; no promises. It imports the standard library, sqlglot, networkx and opt_einsum,
and never an array, a file or a device. One query goes through it in this order:

    graph    = order_contractions(graph)          form 1, `planner.einsum`: what is asked
    plan     = plan_query(graph, request).plan    form 2, `planner.relational`: how it is cut and where it lives
    program  = build_program(plan, counts)        form 3, `planner.program`: in what order
"""

part_of = "einsql"
