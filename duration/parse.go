package duration

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/curfew-dev/curfew/refusal"
)

// Parse parses a duration in the format of time.ParseDuration. Days of 24 hours can be written
// first: 500ms, 30s, 1h30m, 1.5h, 1d12h. The empty text is 0, which means none in Curfew. A duration
// must not have a sign, and must be a whole number of ms. For other texts Parse returns an
// *InvalidError that says what to write instead.
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

// maxDurationText is the greatest length of a text in bytes. No duration needs more.
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
	// The days are parsed as hours by time.ParseDuration, and multiplied by 24. This is exact: a
	// number of days that is a whole number of ms is 24 times a whole number of ns.
	d, err := time.ParseDuration(days + "h")
	if err != nil || strings.Trim(days, "0123456789.") != "" || d > maxDuration/24 {
		return 0, false
	}
	d *= 24
	if rest == "" {
		return d, true
	}
	// time.ParseDuration accepts a sign, and a 0 without a unit.
	more, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") || rest == "0" || more > maxDuration-d {
		return 0, false
	}
	return d + more, true
}

// checkDuration returns what is wrong with a duration, or "" if nothing is.
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

// refuseDuration returns the error for a text that Parse refuses: what is wrong, and what to write.
func refuseDuration(text string) error {
	why := "is not a duration: write a number and a unit (ms, s, m, h or d), such as 30s, 1h30m or 1d"
	d, ok := readDuration(text)
	switch better := repairDuration(text); {
	case ok:
		why = checkDuration(d)
	case len(text) > maxDurationText:
		why = "has " + strconv.Itoa(len(text)) + " bytes, the limit is 64: write a duration such as 30s, 1h30m or 1d"
	case strings.HasPrefix(text, "-"):
		why = "is negative or not a duration: write 0s for none"
	case strings.Trim(text, "0123456789.") == "" && better != "":
		why = "has no unit: write " + better
	case better != "":
		why = "is not a duration: write " + better
	case tooLong(text):
		why = "is longer than 106751d, the longest that is kept: write 0s for none"
	}
	return refusal.Invalid("duration", "%q %s", refusal.Clip(text), why)
}

// tooLong reports whether a text is a duration that overflows. It is if the text can be parsed
// with one digit in place of each number.
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

// repairDuration returns the duration that was probably meant, or "" if there is no guess.
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

// plainNumber rewrites 30, 1e3, 0x10 and 1e3ms as 30s, 1000s, 16s and 1000ms.
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

// isoDuration rewrites P1DT12H as 1d12h. It returns "" for months and years, which have no fixed length.
func isoDuration(text string) string {
	date, clock, _ := strings.Cut(strings.TrimPrefix(text, "p"), "t")
	if !strings.HasPrefix(text, "p") || date != "" && !strings.HasSuffix(date, "d") {
		return ""
	}
	return date + clock
}

// daysFirst rewrites 12h1d as 1d12h.
func daysFirst(text string) string {
	before, after, found := strings.Cut(text, "d")
	rest := strings.TrimRight(before, "0123456789.")
	if !found || rest == "" {
		return ""
	}
	return before[len(rest):] + "d" + rest + after
}
