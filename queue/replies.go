package queue

import (
	"fmt"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// worded reads a reply that begins with a word. It returns an error for the two refusals that all
// calls share: INVALID, with a field and a reason; and BROKEN, with a reason.
func worded(reply any, err error) ([]any, error) {
	words, err := engine.List(reply, err, 1)
	if err != nil {
		return nil, err
	}
	switch engine.Text(words[0]) {
	case "INVALID":
		if len(words) < 3 {
			return nil, engine.Unexpected("answer", words)
		}
		return nil, refusal.Invalid(engine.Text(words[1]), "%s", engine.Text(words[2]))
	case "BROKEN":
		return nil, broken(words[1:])
	}
	return words, nil
}

// broken returns ErrBroken with the reason, which is the last of words.
func broken(words []any) error {
	if len(words) == 0 {
		return refusal.ErrBroken
	}
	return fmt.Errorf("%w: %s", refusal.ErrBroken, engine.Text(words[len(words)-1]))
}
