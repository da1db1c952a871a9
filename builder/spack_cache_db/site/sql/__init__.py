"""SQL with a visitor's words in it: what it may do, what it may cost, and where it runs.

SQLite asks for the time between the steps of a statement, and one step can take minutes, gigabytes,
or the process with it. So such statements run in processes of their own (`runner`), which end when
their time is over, whatever they do; `authorizer` and `limits` say what they may do until then.
"""
