#!/bin/sh
# producer.sh KIND [TIMEOUT [QUEUE]] enqueues a task whose payload is standard input, waits for its end without polling, and
# prints the result.
set -eu
. "$(dirname "$0")/curfew.sh"
kind=$1 timeout=${2:-1m} queue=${3:-default}
partition=${root##*\{}
id=${partition%\}}-$(unique) # with an id of its own the call can be repeated, and makes one task
call enqueue "$kind" id "$id" timeout "$timeout" queue "$queue" payload
echo "$id" >&2

# look returns 0 if the task has ended, and otherwise sets patience to how many seconds it may take, 30 at most.
look() {
	printf %s "$id" >"$dir/id"
	call result <"$dir/id" || exit 1
	until=$(value until)
	patience=$((${until:-9999999999999} / 1000 + 1 - $(cli TIME | head -n 1)))
	[ $patience -lt 30 ] || patience=30
	[ $patience -gt 0 ] || patience=1
	[ -z "$(value channel)" ]
}

# Messages may be lost, so it looks again when the time of the task is up. It looks whenever a subscription begins: otherwise
# an end before that would be missed.
mkfifo "$dir/ended"
until look; do
	timeout "$patience" redis-cli -u "$url" --no-auth-warning SUBSCRIBE "$root:ended" >"$dir/ended" &
	while read -r word; do
		case $word in subscribe | "$id") look && break ;; esac
	done <"$dir/ended"
	kill $! 2>/dev/null || true
done
[ "$(value status)" = COMPLETED ] || {
	echo "$(value status): $(value error)" >&2
	exit 1
}
value result
