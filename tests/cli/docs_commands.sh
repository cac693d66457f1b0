#!/usr/bin/env bash
# Every command in the README, the guide and their like works as it is written, in its order.
exec python3 "$(dirname "$0")/docs_commands.py" README.md docs/guide.md docs/search.md docs/agents.md examples/README.md
