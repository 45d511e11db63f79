package main

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// part is a part of the suite that looks for a bug.
type part struct {
	pkg, run string
	args     []string
}

// parts of the suite, by name.
var parts = map[string]part{
	stories: {"queue", storyTests, nil},
	// A rare mistake needs more sequences than a usual run plays. rapid must not spend time on a smaller example after a failure.
	"model":       {"internal/test/model", "^TestModel$", []string{"-rapid.checks=600", "-rapid.shrinktime=1ms", "-rapid.nofailfile"}},
	"reasons":     {"internal/test/model", "^TestACancelledTaskKeepsItsReason$", nil},
	"channels":    {"queue", "^TestMessagesAreSentBeforeTheCallReturns$/^redis$", nil},
	"full memory": {"queue", "^TestAFullRedisStillDrains$", nil},
	"hooks":       {"queue", "^TestTheErrorInAHookIsTextOfABoundedSize$/^redis$", nil},
	"words":       {"queue", "^TestErrorsOfABrokenRecordNameNoLineOfTheLua$", nil},
	"failures":    {"queue", "^TestAQueueKeepsItsFailures", nil},
	"events":      {"events", "^TestTheStreamOfEventsIsCapped$/^redis$|^TestEventsOfOneCall/^redis$|^TestTrimmedEvents/.*/^redis$|^TestEntriesOfOtherPrograms/^redis$|^TestAllEventsOfMany", nil},
	"repair":      {"internal/audit", "^TestEachPlantedInconsistencyIsRepaired$/^redis$", nil},
	"types":       {"queue", "^TestResultsOfTypes$/^redis$|^TestTheCheckOfAResultIsBounded$/^redis$|^TestTheResultOfANodeIsText$/^redis$", nil},
	"lengths":     {"queue", "^TestAFullQueueRefusesTasks$/^redis$", nil},
	"kinds":       {"inspect", "^TestKindsBeyondAThousand", nil},
}

const (
	stories    = "stories"
	storyTests = "^TestStories$/^redis$"
)

func partNames() []string { return slices.Sorted(maps.Keys(parts)) }

// partOf returns what a bug's `by` names: a part, or one story.
func partOf(tree fs.FS, by string) (part, error) {
	if p, known := parts[by]; known {
		return p, nil
	}
	name, one := strings.CutPrefix(by, stories+"/")
	if one {
		p := parts[stories]
		p.run += "/^" + regexp.QuoteMeta(name) + "$"
		_, err := fs.Stat(tree, path.Join(p.pkg, "testdata", name+".txt"))
		if err != nil {
			return part{}, fmt.Errorf("there is no story %q: %w", name, err)
		}
		return p, nil
	}
	return part{}, fmt.Errorf("there is no part %q: choose one of %s, or %s/ and the name of a story", by, strings.Join(partNames(), ", "), stories)
}

// whole returns the part that a story belongs to. It returns any other part as it is.
func whole(by string) string {
	if strings.HasPrefix(by, stories+"/") {
		return stories
	}
	return by
}
