"""The playground: a web server on which a class writes RASP and sees the transformer appear.

The server process reads requests and never compiles. Worker processes do all work on programs, one request each, with
limits on time and memory. No Python of a user is executed: a program is a `.rasp` text, read by `tracr.parse`.

requests.py     reads and checks the bodies of requests
replies.py      an answer, and the refusals
program.py      the program of a request, read and compiled
compiling.py    the work of a worker: pure functions from a request to an answer; downloads.py: files to keep
gallery.py      the examples
warm.py         imported before workers are forked
workers.py      one worker process: limits, the time limit, its replacement
queue.py        the waiting requests, in a fair order
crew.py         the workers that take requests from the queue
rate.py         how many requests a browser and an address may send
headers.py      the headers of every answer
page_files.py   the files of the page
app.py          the routes
connections.py  slow and idle connections
serving.py      the server process: start, stop
limits.py       all limits, with their reasons

It needs the extra `web`: starlette and uvicorn. The page itself is built from `web/src/playground` into `page/`.
"""
