#!/bin/sh
# worker.sh QUEUE SECONDS COMMAND [ARGUMENT...] runs the command for each task of a queue, until SIGTERM. Standard input of the
# command is the payload, its standard output the result. It is ended after so many seconds, or when the time of the task is
# up. If it fails, its standard error is the error of the task. CURFEW_KIND and CURFEW_TASK_ID are in its environment.
set -u
. "$(dirname "$0")/curfew.sh"
queue=$1 limit=$2
shift 2
name=shell-$(unique) # no other worker has or had this name
seq=0 stopping=
trap 'stopping=yes; trap "exit 1" TERM' TERM

# run runs the command for the claim in the reply, and reports how it ended.
run() {
	id=$(value id) epoch=$(value epoch) left=$((limit * 1000)) now=$(value now)
	value payload >"$dir/payload"
	export CURFEW_TASK_ID="$id" CURFEW_KIND="$(value kind)"
	# After a limit the class of the error names it, so it counts as a timeout even if the clock of Redis is a little behind.
	class=error
	for bound in deadline:$(value deadline_at) timeout:$(value attempt_ends_at); do
		end=${bound#*:}
		[ -z "$end" ] || [ $((end - now)) -ge $left ] || { left=$((end - now)) class=${bound%:*}; }
	done
	[ $left -gt 0 ] || left=1
	if timeout -k 1 "$(seconds $left)" "$@" <"$dir/payload" >"$dir/result" 2>"$dir/error"; then
		call settle "$name" "$id" "$epoch" result <"$dir/result"
	else
		code=$?
		case $code in
		124 | 137) echo "stopped after $(seconds $left) s" >>"$dir/error" ;;
		*) class=error ;;
		esac
		call settle "$name" "$id" "$epoch" code $code class "$class" error <"$dir/error"
	fi && echo "$id $(value status)"
}

while [ -z "$stopping" ]; do
	seq=$((seq + 1))
	# No heartbeat comes while the command runs, so the lease is longer than its time.
	printf %s $((limit + 5))s >"$dir/lease"
	call fetch "$name" queues "$queue" seq $seq lease <"$dir/lease" || exit 1
	[ "$(value stop)" != 1 ] || break
	if [ -n "$(value id)" ]; then
		run "$@"
	elif [ "$(value wait_ms)" -gt 0 ]; then
		cli BLPOP "$(value wake)" "$(seconds "$(value wait_ms)")" >"$dir/woken" || sleep 0.5
	fi
done
printf 0s >"$dir/lease"
call heartbeat "$name" lease <"$dir/lease" # goodbye
