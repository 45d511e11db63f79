package main

// Who may settle, and what a repeat is told.
var settleBugs = []bug{
	{"settle without a fence", "task/holds.lua",
		`task.epoch == epoch and`, `true and`, "stories/settle_refused"},
	{"settle whatever the status is", "task/holds.lua",
		`(task.status == "RUNNING" and task.worker == worker or task.status == "PENDING" and task.lost_by == worker)`, `true`, "stories/late_complete_is_refused"},
	{"settle whoever the worker is", "task/holds.lua",
		`task.status == "RUNNING" and task.worker == worker`, `task.status == "RUNNING"`, "stories/settle_by_another_worker"},
	{"anybody settles after a lost lease", "task/holds.lua",
		` and task.lost_by == worker`, ``, "stories/lease_lost_settles_until_taken"},
	{"nobody settles after a lost lease", "task/holds.lua",
		` or task.status == "PENDING" and task.lost_by == worker`, ``, "stories/lease_lost_settles_until_taken"},
	{"a repeated settlement is refused", "task/report.lua",
		`elseif task.call == call then`, `elseif false then`, "stories/complete_repeated"},
	{"a repeated retry is refused", "task/report.lua",
		`if task.requeued_by == call then`, `if false then`, "stories/fail_retried_repeated"},
	{"a repeated last failure is refused", "task/fail_attempt.lua",
		`call = failure.call, `, ``, "stories/fail_repeated"},
	{"settle is refused on a full Redis", "call/settle.lua",
		`-- Flags    allow-oom        a full Redis must still drain`, `-- Flags`, "full memory"},
	{"settle does not end what is late", "task/report.lua",
		`load_task(tx, o.id)`, `record.get(tx, o.id)`, "stories/late_complete_is_refused"},
	{"nobody hears of a refused call", "task/refuse.lua",
		`if tx.root.level ~= "all" then`, `if tx.root.level == "all" then`, "stories/rejected_calls"},
	{"a release costs a retry", "task/report.lua",
		`record.set(tx, task, "requeued_by", call)`,
		`record.set(tx, task, "requeued_by", call)
  task.retries = string.format("%d", (task.retries or 0) + 1)`, "stories/release"},
}

// What a fetch gives.
var fetchBugs = []bug{
	{"the epoch does not grow", "task/take.lua",
		`string.format("%d", task.epoch + 1)`, `task.epoch`, "stories/fail_retried"},
	{"a repeated fetch takes other tasks", "task/claim.lua",
		`if ask.seq <= newest then`, `if false then`, "stories/fetch_repeated"},
	{"a repeated fetch gives what is late", "task/claim.lua",
		`task.status == "RUNNING" and task.worker == ask.worker`, `task.status`, "stories/fetch_repeated_past_the_deadline"},
	{"an expired task is handed out", "task/take.lua",
		`load_task(tx, id)`, `record.get(tx, id)`, "stories/fetch_expired_is_never_handed_out"},
	{"a fetch gives more than was asked", "task/claim.lua",
		`math.min(want, free.n, got.left)`, `math.min(want, free.n)`, "stories/fetch_never_gives_more_than_asked"},
	{"quotas are ignored", "task/claim.lua",
		`round == 1 and ask.quotas[i] or got.left`, `got.left`, "stories/fetch_quotas"},
	{"the baton is not passed on", "queue/wake.lua",
		`own(tx, "wakes")[queue] = ready > 0 or nil`, `own(tx, "wakes")[queue] = nil`, "stories/fetch_passes_the_baton"},
	{"a token outlives the line", "queue/wake.lua",
		`try(tx, "DEL", tx.key.wake .. queue)`, ``, "stories/complete"},
	{"one expired task ends a fetch", "task/claim.lua",
		`looks = most + 100`, `looks = most`, "stories/fetch_line_without_record"},
}

// Leases and heartbeats.
var leaseBugs = []bug{
	{"a fetch does not renew the lease", "task/claim.lua",
		`index.add(tx, key.workers,`,
		`local add = redis.call("ZSCORE", key.workers, ask.worker) and tostring or index.add
  add(tx, key.workers,`, "stories/fail_retried"},
	{"a heartbeat does not renew the lease", "call/heartbeat.lua",
		`index.add(tx, key.workers,`,
		`local add = redis.call("ZSCORE", key.workers, b.worker) and tostring or index.add
    add(tx, key.workers,`, "stories/heartbeat_keeps_the_lease"},
	{"a heartbeat gives back what is on its way", "call/heartbeat.lua",
		`leaves and "+inf" or string.format("%d", b.known)`, `"+inf"`, "stories/heartbeat_gives_back_unknown"},
	{"a lost claim may go on", "task/must_stop.lua",
		`return "lost"`, `return nil`, "stories/heartbeat_stops"},
	{"a cancelled attempt may go on", "task/must_stop.lua",
		`return "cancelling"`, `return nil`, "stories/cancel_grace"},
	{"a goodbye counts as a lost lease", "call/heartbeat.lua",
		`give_back(tx, id, worker, false)`, `give_back(tx, id, worker, true)`, "stories/heartbeat_goodbye"},
	{"a task that kills its workers is retried without limit", "task/return_claim.lua",
		`if tonumber(losses) > 3 then`, `if false then`, "stories/lease_lost_too_often"},
	{"a lost lease costs a retry", "task/return_claim.lua",
		`record.set(tx, task, "lease_losses", losses)`,
		`record.set(tx, task, "lease_losses", losses)
  task.retries = string.format("%d", (task.retries or 0) + 1)`, "stories/lease_lost"},
	{"it is forgotten whose lease was lost", "task/return_claim.lua",
		`record.set(tx, task, "lost_by", worker)`, ``, "stories/lease_lost_settles_until_taken"},
	{"a lease ends at its last instant", "call/sweep.lua",
		`at("workers", past,`, `at("workers", due,`, "stories/lease_lost"},
	{"a heartbeat does not end what is late", "task/must_stop.lua",
		`load_task(tx, id)`, `record.get(tx, id)`, "stories/heartbeat_stops"},
	{"who may not go on reports progress", "task/must_stop.lua",
		`local task = load_task(tx, id)`,
		`local task = load_task(tx, id)
  if task and progress ~= "" and task.started_at then
    keep(tx, task, progress)
  end`, "stories/heartbeat_progress_refused"},
	{"a task in line has progress of the lost claim", "task/must_stop.lua",
		`progress ~= "" and task.status == "RUNNING"`, `progress ~= ""`, "stories/heartbeat_progress_after_a_lost_lease"},
	{"progress that was told again is new", "task/must_stop.lua",
		`task.progress ~= progress or`, `true or`, "stories/heartbeat_progress"},
	{"an attempt's progress is of the time of another's", "task/must_stop.lua",
		` or (tonumber(task.progress_at or nil) or 0) < tonumber(task.started_at)`, ``, "stories/heartbeat_progress_of_another_attempt"},
}

// The line, what is counted, and the order of what a unit of work writes.
var lineBugs = []bug{
	{"an ended task stays among the claims", "task/leave.lua",
		`index.remove(tx, key.claims .. task.worker, task.id)`, ``, "stories/complete"},
	{"an ended task stays in line", "task/leave.lua",
		`index.remove(tx, key.ready .. task.queue, task.id)`, ``, "stories/sweep_times_out"},
	{"running is not counted down", "task/leave.lua",
		`count.run(tx, task.queue, task.worker, -1)`, ``, "stories/complete"},
	{"counts are not written", "queue/count.lua",
		`if n ~= 0 then`, `if false then`, "stories/enqueue_ready"},
	{"what is given back goes last", "queue/place.lua",
		`if how == "front" then`, `if false then`, "stories/heartbeat_goodbye"},
	{"what is given back goes in any order", "queue/place.lua",
		`tx.front = n`, ``, "stories/lease_lost_in_chunks"},
	{"priority 3 goes last", "queue/place.lua",
		`(3 - (tonumber(priority or 0) or 0))`, `(tonumber(priority or 0) or 0)`, "stories/enqueue_priority"},
	{"the line's sequence is not kept", "store/commit.lua",
		`if tx.seq or tx.front then`, `if false then`, "stories/enqueue_list"},
	{"two tokens for one line", "queue/wake.lua",
		`if tokens == 0 or tokens == true and try(tx, "LLEN", key) == 0 then`, `do`, "stories/enqueue_ready"},
	{"of two words on a member of a set the first holds", "store/index.lua",
		"  end\n  scores[member] = score\n", "    scores[member] = score\n  end\n", "stories/settle_moves_two_in_one_line"},
	{"what is made anew is deleted", "store/commit.lua",
		"later.write_drops(tx)\n  index.write_added(tx)", "index.write_added(tx)\n  later.write_drops(tx)", "stories/suspend_part_begun_again_keeps_patience"},
}
