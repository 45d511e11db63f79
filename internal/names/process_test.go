package names

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestANameOfAProcessHasItsPartsInCharactersThatRedisAccepts(t *testing.T) {
	for _, test := range []struct {
		claim string
		parts []string
		want  string
	}{
		{"parts are kept, in their order", []string{"mail.v2", "host_1"}, "mail.v2-host_1-"},
		{"without parts it begins with the process", nil, ""},
		{"an empty part is left out", []string{"", "host"}, "host-"},
		{"other characters become _", []string{"two words", "a/b:c"}, "two_words-a_b_c-"},
		{"letters and digits are those of ASCII", []string{"xé٣\xff"}, "x___-"},
		{"the beginning is a letter or digit", []string{"._-é9", "--host"}, "9-host-"},
		{"a part of signs is left out", []string{"-", "host"}, "host-"},
		{"a part is cut to 64 characters", []string{strings.Repeat("x", 1000), strings.Repeat("é", 1000), "host"},
			strings.Repeat("x", 64) + "-host-"},
	} {
		got := OfProcess(test.parts...)
		random, found := strings.CutPrefix(got, fmt.Sprintf("%s%d-", test.want, os.Getpid()))
		if !found || len(random) != 10 || !Valid(random, "") {
			t.Errorf("%s: OfProcess(%.80q) = %s, want %s, the process, and 10 letters or digits", test.claim, test.parts, got, test.want)
		}
		if again := OfProcess(test.parts...); again == got {
			t.Errorf("%s: two calls returned %s", test.claim, got)
		}
	}
}
