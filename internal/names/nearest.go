package names

// Nearest returns the word that is most like a mistyped one, or "" if none is near.
func Nearest(word string, words []string) string {
	if len(word) > 200 {
		return "" // it is no name, and comparing takes time
	}
	best, least := "", 1+max(len(word)/3, 1) // a third of the word may be wrong
	for _, w := range words {
		if d := distance(word, w); w != word && d < least && d < max(len(w), 2) {
			best, least = w, d
		}
	}
	return best
}

// Hint returns ": did you mean name?" for the word that is most like a mistyped one, or "" if none is near.
func Hint(word string, words []string) string {
	near := Nearest(word, words)
	if near == "" {
		return ""
	}
	return ": did you mean " + near + "?"
}

// distance is how many letters must be changed, added or removed to make one word of another, or neighbours exchanged.
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
