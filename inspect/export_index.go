package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// exportOrphans returns lines for the states, payloads and results that have no spec. All others are
// part of the line of their task.
func (q exporter) exportOrphans(ctx context.Context, p int, kind string, ids []string) ([]ExportLine, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = q.Root(p) + ":spec:" + id
	}
	types, err := q.types(ctx, keys)
	var lines []ExportLine
	for i := range types {
		if types[i] == "string" {
			continue
		}
		orphan, _, err := q.exportKey(ctx, p, exportKey{kind + ids[i], "string"}, 0, 0, 1)
		if err != nil {
			return nil, err
		}
		lines = append(lines, orphan...)
	}
	return lines, err
}

// length returns the length of a sorted set or a list, and 0 for other types.
func (q exporter) length(ctx context.Context, p int, k exportKey) (n int64, err error) {
	switch key := q.Root(p) + ":" + k.Name; k.Type {
	case "zset":
		n, err = q.Client().ZCard(ctx, key).Result()
	case "list":
		n, err = q.Client().LLen(ctx, key).Result()
	}
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		err = nil // exportKey reports it
	}
	return n, err
}

// exportKey returns about n lines of a key, and the position to continue from, 0 at the end. A
// sorted set or a list ends at length to. Keys of any name are exported, because a newer version may
// have added some.
func (q exporter) exportKey(ctx context.Context, p int, k exportKey, from uint64, to int64, n int) ([]ExportLine, uint64, error) {
	key := q.Root(p) + ":" + k.Name
	index, name, _ := strings.Cut(k.Name, ":")
	entry := ExportLine{Type: "index", Index: index, Name: name, Kind: k.Type}
	first, last := int64(from), int64(from)+int64(n)-1
	var lines []ExportLine
	var next uint64
	var err error
	switch {
	case k.Type == "hash" && (index == "queue" || index == "worker") && name != "":
		var fields map[string]string
		if fields, err = q.Client().HGetAll(ctx, key).Result(); len(fields) > 0 {
			lines = append(lines, ExportLine{Type: index, Name: name, Fields: fields})
		}
	case k.Type == "hash":
		var words []string
		words, next, err = q.Client().HScan(ctx, key, from, "", int64(n)).Result()
		for i := 0; i+1 < len(words); i += 2 {
			entry.Member, entry.Value = words[i], words[i+1]
			lines = append(lines, entry)
		}
	case k.Type == "set":
		var members []string
		members, next, err = q.Client().SScan(ctx, key, from, "", int64(n)).Result()
		for _, entry.Member = range members {
			lines = append(lines, entry)
		}
	case k.Type == "zset":
		var members []redis.Z
		members, err = q.Client().ZRangeWithScores(ctx, key, first, last).Result()
		for i, z := range members {
			entry.Member, entry.Score, entry.Place = fmt.Sprint(z.Member), z.Score, first+int64(i)
			lines = append(lines, entry)
		}
		next = rest(len(members), n, last, to)
	case k.Type == "list":
		var members []string
		members, err = q.Client().LRange(ctx, key, first, last).Result()
		for i, member := range members {
			entry.Member, entry.Place = member, first+int64(i)
			lines = append(lines, entry)
		}
		next = rest(len(members), n, last, to)
	case k.Type == "string":
		if entry.Value, err = q.Client().Get(ctx, key).Result(); err == nil {
			lines = append(lines, entry)
		}
	case k.Type == "stream":
		lines, err = q.exportStream(ctx, key, k.Name)
	case k.Type != "none":
		lines = append(lines, ExportLine{Type: "broken", Name: k.Name, Value: "has the type " + k.Type + ", which Curfew does not use"})
	}
	switch {
	case err == redis.Nil:
		err = nil // the key was removed after it was found
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return []ExportLine{{Type: "broken", Name: k.Name, Value: "is no longer a " + k.Type}}, 0, nil
	}
	return lines, next, err
}

// rest returns the rank to continue from after a page of got of n requested elements, 0 at the end.
func rest(got, n int, last, to int64) uint64 {
	if got < n || last+1 >= to {
		return 0
	}
	return uint64(last + 1)
}

// exportStream returns a line with the length of a stream. Package events reads the events themselves.
func (q exporter) exportStream(ctx context.Context, key, name string) ([]ExportLine, error) {
	line := ExportLine{Type: "stream", Name: name}
	var err error
	if line.Length, err = q.Client().XLen(ctx, key).Result(); err != nil {
		return nil, err
	}
	newest, err := q.Client().XRevRangeN(ctx, key, "+", "-", 1).Result()
	for _, entry := range newest {
		line.Last = entry.ID
	}
	return []ExportLine{line}, err
}
