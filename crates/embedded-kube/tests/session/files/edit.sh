#!/bin/sh
# The editor of the session.
sed -i 's/c: "3"/c: "4"/' "$1"
