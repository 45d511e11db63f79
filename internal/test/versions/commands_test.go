package versions

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// commands returns the commands that make all keys of the fixture again, one a line, as redis-cli takes them.
func commands(t *testing.T, rdb *redis.Client) string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), root+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var text strings.Builder
	for _, key := range keys {
		if key == root+":clock" { // only tests have it
			continue
		}
		for _, command := range commandsOf(t, rdb, key) {
			for i, word := range command {
				command[i] = quoted(word)
			}
			text.WriteString(strings.Join(command, " ") + "\n")
		}
	}
	return text.String()
}

// commandsOf returns the commands that make a key. XADD makes a stream entry by entry.
func commandsOf(t *testing.T, rdb *redis.Client, key string) [][]string {
	t.Helper()
	ctx := context.Background()
	switch kind := rdb.Type(ctx, key).Val(); kind {
	case "string":
		return [][]string{{"SET", key, rdb.Get(ctx, key).Val()}}
	case "list":
		return [][]string{append([]string{"RPUSH", key}, rdb.LRange(ctx, key, 0, -1).Val()...)}
	case "set":
		members := rdb.SMembers(ctx, key).Val()
		slices.Sort(members)
		return [][]string{append([]string{"SADD", key}, members...)}
	case "hash":
		words := []string{"HSET", key}
		fields := rdb.HGetAll(ctx, key).Val()
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			words = append(words, field, fields[field])
		}
		return [][]string{words}
	case "zset":
		words := []string{"ZADD", key}
		for _, z := range rdb.ZRangeWithScores(ctx, key, 0, -1).Val() {
			words = append(words, strconv.FormatFloat(z.Score, 'f', -1, 64), fmt.Sprint(z.Member))
		}
		return [][]string{words}
	case "stream":
		var all [][]string
		for _, entry := range rdb.XRange(ctx, key, "-", "+").Val() {
			words := []string{"XADD", key, entry.ID}
			for _, field := range slices.Sorted(maps.Keys(entry.Values)) {
				words = append(words, field, fmt.Sprint(entry.Values[field]))
			}
			all = append(all, words)
		}
		return all
	default:
		t.Fatalf("%s has the type %s", key, kind)
		return nil
	}
}

// quoted returns a word as redis-cli and strconv.Unquote read it.
func quoted(word string) string {
	var text strings.Builder
	plain := word != ""
	for _, b := range []byte(word) {
		switch {
		case b == '"' || b == '\\':
			text.WriteString(`\` + string(rune(b)))
			plain = false
		case b == '\n':
			text.WriteString(`\n`)
			plain = false
		case b < ' ' || b > '~':
			fmt.Fprintf(&text, `\x%02x`, b)
			plain = false
		default:
			plain = plain && b != ' ' && b != '\''
			text.WriteByte(b)
		}
	}
	if plain {
		return word
	}
	return `"` + text.String() + `"`
}

// load runs the commands of a fixture.
func load(t *testing.T, rdb redis.UniversalClient, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		words, err := split(line)
		if err == nil {
			err = rdb.Do(t.Context(), words...).Err()
		}
		if err != nil {
			t.Fatalf("%s:%d: %v", file, n+1, err)
		}
	}
}

// split returns the words of a line.
func split(line string) (words []any, err error) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		word, _, _ := strings.Cut(line, " ")
		value := word
		if line[0] == '"' {
			if word, err = strconv.QuotedPrefix(line); err == nil {
				value, err = strconv.Unquote(word)
			}
			if err != nil {
				return nil, err
			}
		}
		words, line = append(words, value), line[len(word):]
	}
	return words, nil
}
