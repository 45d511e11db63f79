package command

import (
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/vocabulary"
)

func TestFactsUseTheVocabulary(t *testing.T) {
	for _, fact := range everyFact {
		name := strings.ToLower(variable(fact))
		if _, known := vocabulary.Of(name); !known {
			t.Errorf("%s is not in the vocabulary", name)
		}
	}
}
