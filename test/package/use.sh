# What somebody does who has just installed it, with whatever is called admin-mirror. Says how it went.
set -eu
cd "$(mktemp -d)"
echo "version: $(admin-mirror --version)"
admin-mirror demo > demo.txt
admin-mirror sandbox --orders 60 --write-config sandbox.yaml > sandbox.json &
sandbox=$!
until [ -s sandbox.json ]; do sleep 0.1; done
admin-mirror sync --quiet --config sandbox.yaml
echo "orders: $(admin-mirror query 'SELECT count(*) FROM orders' --format csv --config sandbox.yaml | tail -n 1)"
# The child processes: one reads, one copies.
admin-mirror query 'SELECT 1' --output one.csv --format csv --config sandbox.yaml
admin-mirror snapshot copy.db --quiet --config sandbox.yaml
admin-mirror start --config sandbox.yaml 2> start.log &
start=$!
until grep -q daemon_started start.log; do sleep 0.1; done
kill "$start"
wait "$start"
echo "start: $?"
kill "$sandbox"
