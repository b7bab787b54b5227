#!/bin/sh
# The same, slowly: while it is being answered, an instance can be asked to end, and nginx to read another list.
exec ./index.cgi 2
