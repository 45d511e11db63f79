package main

// Children and their owners.
var childBugs = []bug{
	{"a doomed child lives until it is drained", "task/ancestor_end.lua",
		`local ended = drained(tx, prefix)`, `local ended = nil`, "stories/children_of_a_completed_owner"},
	{"a child is doomed by the next call only", "task/doom_children.lua",
		`own(tx, "drained")[task.id] = tonumber(task.completed_at)`, ``, "stories/cancel_owner_between_its_children"},
	{"an owner seen alive in the same call dooms no children", "task/doom_children.lua",
		`own(tx, "drained")[task.id] = tonumber(`, `own(tx, "drained")[task.id] = tx.drained[task.id] == nil and tonumber(`, "stories/cancel_owner_between_its_children"},
	{"an ended owner counts as live for its children", "task/owner_state.lua",
		`live(state)`, `state.status`, "stories/children_end_with_their_owner"},
	{"children are not drained", "call/sweep.lua",
		`at("draining", due, sweep_draining)`, ``, "stories/children_drain_in_chunks"},
	{"only the first batch of children is drained", "sweep/sweep_draining.lua",
		`if #ids < r.chunk then`, `if true then`, "stories/children_drain_in_chunks"},
	{"a child's record is removed before its owner reads it", "task/finish.lua",
		`if not owner then`, `if true then`, "stories/children_retained_with_their_owner"},
	{"the record of a child that ended before its owner is never removed", "sweep/sweep_draining.lua",
		`elseif child.status and`, `elseif false and`, "stories/children_retained_with_their_owner"},
	{"an owner's record is removed before its children end", "sweep/sweep_retained.lua",
		`elseif task.children and drained(tx, id) then`, `elseif false then`, "stories/retention_waits_for_the_children"},
	{"a child may outlast its owner", "task/draft.lua",
		`["until"] = plan.bound, `, ``, "stories/child_with_its_owners_deadline"},
	{"an ended owner gets children", "task/plan.lua",
		`elseif not live(parent) then`, `elseif not parent.status then`, "stories/child_needs_a_live_owner"},
	{"an owner's children are not counted", "task/adopt.lua",
		`(parent.children or 0) + 1`, `parent.children or 0`, "stories/children_end_with_their_owner"},
	{"children of a late owner are cancelled, not timed out", "task/ending.lua",
		`if not above or not above.timed_out then`, `if true then`, "stories/children_end_with_their_owner"},
	{"of equal instants the child's own decides", "task/plan.lua",
		`deadline < tonumber(bound)`, `deadline <= tonumber(bound)`, "stories/child_with_its_owners_deadline"},
	{"a late owner gets children", "task/plan.lua",
		`parent, why = load_task(tx, above)`, "-- (of its record alone)\n-- @use store/record\n    parent, why = record.get(tx, above)", "stories/children_end_with_their_owner"},
	{"a grandchild is bound by its owner's deadline alone", "task/plan.lua",
		`(parent["until"] or parent.deadline_at)`, `parent.deadline_at`, "stories/children_copy_until"},
}

// Enqueues.
var enqueueBugs = []bug{
	{"a repeated enqueue creates the task again", "task/find_existing.lua",
		`and by_id(tx, task)`, `and nil`, "stories/enqueue_repeated"},
	{"an id that is taken is given to another task", "task/find_existing.lua",
		` and stored == task.payload`, ``, "stories/enqueue_id_taken"},
	{"an id twice in a list is two tasks", "task/find_existing.lua",
		` or tx.tasks[task.id]`, ``, "stories/enqueue_list"},
	{"the default of a kind takes precedence over the call", "task/apply_defaults.lua",
		`if f[name] == nil and`, `if`, "stories/kind_defaults_precedence"},
	{"a task is accepted after its deadline", "task/plan.lua",
		`elseif deadline and deadline < tx.at then`, `elseif false then`, "stories/enqueue_refused"},
	{"a task is accepted that starts after its deadline", "task/plan.lua",
		`elseif deadline and start and start > deadline then`, `elseif false then`, "stories/enqueue_refused"},
	{"a delayed task is in line at once", "task/create.lua",
		`elseif not d.role then`, "end\n  if not d.role then", "stories/cancel_delayed"},
}

// Idempotency keys.
var keyBugs = []bug{
	{"an idempotency key matches any content", "task/find_existing.lua",
		`elseif digest ~=`, `elseif false and digest ~=`, "stories/enqueue_idempotent"},
	{"a key is removed with its record", "task/schedule_removal.lua",
		`math.max(goes, tx.at + 86400000)`, `goes`, "stories/idempotency_key_outlives_record"},
	{"the start frees a key of any scope", "task/take.lua",
		`task.idempotency_scope == "started"`, `task.idempotency_scope`, "stories/idempotency_finished"},
	{"a key of scope started is kept past the start", "task/take.lua",
		`idempotency.free(tx, task.idempotency_key)`, ``, "stories/idempotency_started"},
	{"the second start frees the key again", "task/take.lua",
		` and task.epoch == "1"`, ``, "stories/idempotency_started_across_a_retry"},
	{"the end does not free a key of scope finished", "task/schedule_removal.lua",
		`scope == "finished" or not task.epoch`, `not task.epoch`, "stories/idempotency_finished"},
	{"a task that never started does not free its key", "task/schedule_removal.lua",
		` or not task.epoch`, ``, "stories/idempotency_started_never"},
	{"the end of another task frees a key", "task/schedule_removal.lua",
		`elseif scope == "finished" or not task.epoch then`, `else`, "stories/idempotency_started"},
	{"a key is held until a sweep removes it", "task/idempotency.lua",
		`if forgotten and forgotten <= tx.at then`, `if false then`, "stories/idempotency_window"},
	{"a key that was taken again is removed early", "task/idempotency.lua",
		`index.remove(tx, tx.key.forget, key)`, ``, "stories/idempotency_key_taken_again"},
	{"a late task holds its key", "task/find_existing.lua",
		`first, why = load_task(tx, id)`, `first, why = record.get(tx, id)`, "stories/idempotency_finished_seen_late"},
	{"a window shorter than the task is accepted", "task/plan.lua",
		`if window and deadline and`, `if false and`, "stories/idempotency_scope_refused"},
}

// Hooks.
var hookBugs = []bug{
	{"a hook runs for a retried attempt", "task/fail_attempt.lua",
		`record.set(tx, task, "last_error", string.sub(text, 1, 4096))`,
		`record.set(tx, task, "last_error", string.sub(text, 1, 4096))
-- @use task/hook
  if task.hook_failure then
    hook(tx, task, "failure", task.hook_failure)
  end`, "stories/retried_attempt_is_not_an_end"},
	{"a hook runs twice", "task/end_hook.lua",
		`hook(tx, task, "success", task.hook_success)`,
		`hook(tx, task, "success", task.hook_success)
      hook(tx, task, "done", task.hook_success)`, "stories/hook_of_each_end"},
	{"a hook gets the wrong event", "task/end_hook.lua",
		`hook(tx, task, "cancel", task.hook_cancel)`, `hook(tx, task, "failure", task.hook_cancel)`, "stories/hook_of_each_end"},
	{"a timeout runs the hook for failures", "task/end_hook.lua",
		`elseif task.timed_out and task.hook_timeout then`, `elseif false then`, "stories/hook_of_each_end"},
	{"a timeout does not fall back to the hook for failures", "task/end_hook.lua",
		`elseif task.hook_failure then`, `elseif task.hook_failure and not task.timed_out then`, "stories/hook_of_a_timeout_falls_back"},
	{"a child's hook is doomed by the child's owner", "task/ancestor_end.lua",
		`dot = string.find(id, ".", bang or 1, true)`, ``, "stories/hook_lives_while_the_owner_drains"},
	{"a hook has no deadline", "task/hook.lua",
		`{deadline = tx.at + (tonumber(f.timeout_ms) or 300000)}`, `{}`, "stories/hook_has_its_own_timeout"},
	{"a hook has no defaults of its kind", "task/hook.lua",
		`f[name] = value`, ``, "stories/hook_has_its_own_timeout"},
	{"the payload of a hook is not JSON", "task/hook.lua",
		`cjson.encode(task[name])`, `'"' .. task[name] .. '"'`, "stories/hook_payload_is_json"},
}

// Promises and timers.
var promiseBugs = []bug{
	{"a promise is in line", "task/create.lua",
		`elseif not d.role then`, `else`, "stories/promise_resolved"},
	{"a child that another call made counts as new", "task/find_existing.lua",
		`not f.enqueued_by or f.enqueued_by == old.enqueued_by`, `true`, "stories/run_child_found"},
	{"a child that this call made counts as known", "task/find_existing.lua",
		`not f.enqueued_by or f.enqueued_by == old.enqueued_by`, `not f.enqueued_by`, "stories/run_child_found"},
	{"a settled promise is settled again", "call/resolve.lua",
		`elseif not live(task) then`, `elseif task.status == "CANCELLED" then`, "stories/promise_settled_twice"},
	{"a repeated resolve is refused", "call/resolve.lua",
		`if task.call == call then`, `if false then`, "stories/promise_settled_twice"},
	{"resolve settles a task that workers run", "call/resolve.lua",
		`elseif not task.role then`, `elseif false then`, "stories/promise_refused"},
	{"a late timer times out", "task/ending.lua",
		`(not first or fires < first or fires == first and kind ~= "ancestor")`, `not first`, "stories/timer_seen_late"},
	{"a timer fires at its owner's end", "task/ending.lua",
		` and kind ~= "ancestor"`, ``, "stories/timer_and_its_owner"},
	{"a late promise is settled", "call/resolve.lua",
		`load_task(tx, id)`, `record.get(tx, id)`, "stories/promise_times_out"},
}
