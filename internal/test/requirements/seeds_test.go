package requirements

import "testing"

// TestSeedS0 tests the document on durable task timeouts, claim by claim. The numbers are the
// rows of seeds.md.
func TestSeedS0(t *testing.T) {
	for _, claim := range []struct {
		name string
		test func(*testing.T)
	}{
		// The unit tests of the document.
		{"S0.17 S0.19 S0.21 S0.23 S0.52 creation sets deadline_at, exactly timeout_ms after created_at", creationSetsDeadline},
		{"S0.12 a timeout of 0 or less is refused, and none means no timeout", timeoutMustBePositive},
		{"S0.21 S0.59 a task without a timeout never expires", noTimeoutNeverExpires},
		{"S0.11 each option may be left out, and all may be given", optionsAreOptional},
		{"S0.24 expired is strict: at its deadline a task is alive, one ms later it is not", expiredIsStrict},
		{"S0.24 S0.52 find_expired: PENDING and RUNNING tasks, never ended ones", findExpired},
		{"S0.24 S0.28 find_expired: oldest first, 100 at a time", findExpiredInBatches},
		{"S0.18 the index of deadlines holds the live tasks with a deadline, and no others", indexHoldsTheLive},
		{"S0.25 S0.52 timeout_task is idempotent: the second call changes nothing", timeoutIsIdempotent},
		{"S0.46 a task that never started has an empty started_at in its event", eventOfNeverStarted},
		{"S0.31 S0.46 S4.44 the event has every required field", eventFields},
		{"S0.13 S0.61 heartbeats do not move the deadline", heartbeatDoesNotExtend},
		{"S0.6 S0.25 a completion one ms late is refused although no reaper runs", lateCompletionIsRefused},
		{"S0.9 S0.15 a retry clears the worker and never moves the deadline", retryKeepsDeadline},
		{"S0.35 S0.43 S0.45 S0.57 the recipe: after a timeout schedule again, with 60s instead of 30s", retryRecipe},

		// Integration.
		{"S0.1 S0.6 S0.53 a task of timeout_ms=1000 that sleeps 5s is FAILED", timesOutAfterDeadline},
		{"S0.2 S0.5 S0.23 S0.55 a task that no worker takes times out as well", timesOutWithoutWorker},
		{"S0.15 max_retries=2 and a handler that always fails is 3 executions", retriesAreAttemptsMore},
		{"S0.33 S0.34 S0.44 S0.57 max_retries=3 and a timeout is 1 execution, FAILED", timeoutIsPermanent},
		{"S0.26 S0.31 eight reapers on 1000 tasks write 1000 events", eightReapers},
		{"S0.29 S0.49 a timeout and the agent that it resumes are logged, word for word", logLines},
		{"S0.47 the counter is the number of tasks that timed out", timeoutsCounter},
		{"S0.48 the histogram of durations tells timeouts apart", durationsHistogram},
		{"S0.29 S0.49 eight reapers log 1000 timeouts and 300 resumed agents once each", eightReapersLog},
		{"S0.28 10,000 at once end within seconds", tenThousandAtOnce},

		// Agents.
		{"S0.3 S0.8 S0.53 of three tasks one times out: two results and one timeout", partialResults},
		{"S0.36 S0.37 settled returns by position which tasks completed, failed, or were cancelled", settledByPosition},
		{"S0.7 S0.30 S0.45 S0.53 a timeout wakes the agent as a completion does, and is an error of its own type", wokenByATimeout},
		{"S0.16 the end of a task that an agent does not wait for does not wake it", nonMembersWakeNobody},
		{"S0.35 the recipe in an agent: the second schedule is a new task, with 60s", retryRecipeOfAnAgent},
		{"S0.38 a wait with a member that completed before it does not hang", doneBeforeTheWait},
		{"S0.45 a timeout of each type has the instant that passed", timeoutsOfEachType},
		{"S0.39 an agent shows what it waits for", saysWhyItWaits},
		{"S0.40 S0.45 S0.53 the third of three succeeds: index 2; none succeeds: the first error", firstSuccess},
		{"S0.54 timeout 5s, the worker sleeps 10s, and the waiting agent handles the timeout", endToEndAgent},

		// End to end.
		{"S0.54 timeout 5s, the worker sleeps 10s and respects its context", endToEndRespectful},
		{"S0.54 timeout 5s, the worker sleeps 10s and ignores its context", endToEndDeaf},
	} {
		t.Run(claim.name, func(t *testing.T) {
			t.Parallel()
			claim.test(t)
		})
	}
}
