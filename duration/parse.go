package duration

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/curfew-dev/curfew/refusal"
)

// Parse reads a duration as a person writes it: what time.ParseDuration reads,
// and days of 24 hours, which come first: 500ms, 30s, 1h30m, 1.5h, 1d12h. Empty text
// and 0s mean none. It must not be negative, carry a sign or be finer than 1 ms.
// What is refused is an *InvalidError that says what to write instead.
func Parse(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, ok := readDuration(text)
	if !ok || checkDuration(d) != "" {
		return 0, refuseDuration(text)
	}
	return d, nil
}

// maxDurationText is more than any duration needs, and little to look through.
const maxDurationText = 64

func readDuration(text string) (time.Duration, bool) {
	if len(text) > maxDurationText || text[0] == '-' || text[0] == '+' {
		return 0, false
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	// As hours, so that time does the reading: a day that is a whole number of ms is 24
	// times a whole number of ns.
	d, err := time.ParseDuration(days + "h")
	if err != nil || strings.Trim(days, "0123456789.") != "" || d > maxDuration/24 {
		return 0, false
	}
	d *= 24
	if rest == "" {
		return d, true
	}
	// time.ParseDuration takes a sign, and a 0 without a unit.
	more, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") || rest == "0" || more > maxDuration-d {
		return 0, false
	}
	return d + more, true
}

// checkDuration says what is wrong with a duration that no one may write.
func checkDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "is negative: write 0s for none"
	case d%time.Millisecond != 0:
		nearest := min(max(d.Round(time.Millisecond), time.Millisecond), maxDuration)
		return "is finer than 1 ms: write " + Duration(nearest).String()
	}
	return ""
}

// refuseDuration says what is wrong with a text that was not read, and what to write.
func refuseDuration(text string) error {
	why := "is no duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d"
	d, ok := readDuration(text)
	switch better := repairDuration(text); {
	case ok:
		why = checkDuration(d)
	case len(text) > maxDurationText:
		why = "has " + strconv.Itoa(len(text)) + " bytes, and a duration needs no more than 64: write it as 30s, 1h30m or 1d"
	case strings.HasPrefix(text, "-"):
		why = "is negative or no duration: write 0s for none"
	case strings.Trim(text, "0123456789.") == "" && better != "":
		why = "has no unit: write " + better
	case better != "":
		why = "is no duration: write " + better
	case tooLong(text):
		why = "is longer than 106751d, the longest that is kept: write 0s for none"
	}
	return refusal.Invalid("duration", "%q %s", refusal.Clip(text), why)
}

// tooLong tells a duration that runs over from what is none: it is read once its
// numbers are made short.
func tooLong(text string) bool {
	var short strings.Builder
	for i, c := range text {
		if c == '.' || !unicode.IsDigit(c) || i == 0 || !unicode.IsDigit(rune(text[i-1])) {
			short.WriteRune(c)
		}
	}
	_, ok := readDuration(short.String())
	return ok
}

// repairDuration guesses what was meant, and is empty where it cannot.
func repairDuration(text string) string {
	if len(text) > maxDurationText {
		return ""
	}
	text = strings.Map(func(c rune) rune {
		switch {
		case c == ',':
			return '.'
		case c == '_' || unicode.IsSpace(c):
			return -1
		}
		return unicode.ToLower(c)
	}, strings.TrimLeft(text, "+"))
	for _, guess := range []string{text, plainNumber(text), isoDuration(text), daysFirst(text)} {
		if guess == "" || guess == "0" {
			continue
		}
		if d, ok := readDuration(guess); ok && checkDuration(d) == "" {
			return guess
		}
	}
	return ""
}

// plainNumber writes 30, 1e3, 0x10 and 1e3ms as 30s, 1000s, 16s and 1000ms.
func plainNumber(text string) string {
	number := strings.TrimRight(text, "msh")
	unit := text[len(number):]
	if unit == "" {
		unit = "s"
	}
	n, err := strconv.ParseFloat(number, 64)
	if whole, notWhole := strconv.ParseInt(number, 0, 64); err != nil && notWhole == nil {
		n, err = float64(whole), nil
	}
	if err != nil || n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + unit
}

// isoDuration writes P1DT12H as 1d12h. Its months and years have no length of their own.
func isoDuration(text string) string {
	date, clock, _ := strings.Cut(strings.TrimPrefix(text, "p"), "t")
	if !strings.HasPrefix(text, "p") || date != "" && !strings.HasSuffix(date, "d") {
		return ""
	}
	return date + clock
}

// daysFirst writes 12h1d as 1d12h.
func daysFirst(text string) string {
	before, after, found := strings.Cut(text, "d")
	rest := strings.TrimRight(before, "0123456789.")
	if !found || rest == "" {
		return ""
	}
	return before[len(rest):] + "d" + rest + after
}
