"""One file a contender, all with the same words.

    prepare(url)        the schema, once, in an empty database
    opened(url)         a context manager: what the others are given; its cost is not part of a timed put-in or drain
    put(app, count)     so many no-op jobs with the payload {"n": i}, by the contender's best way to put in many
    drain(app, count)   run until `count` have run and what became of them is committed; 0: see that nothing is due

A handler counts its runs by `counter.count()`. Names are those of the packages; imports are absolute.
"""
