"""The explorer: a local page on which people look through models, live; its frozen form; and the zoo in a browser.

One page draws from traces (attention and tokens of every block) wherever they come from: the server, the file itself,
or a network that the browser runs.
"""
