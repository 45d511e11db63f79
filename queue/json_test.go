package queue_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

func TestAReceiptInJSON(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000).UTC()
	for want, r := range map[string]queue.Receipt{
		`{"id":"0-A","new":true}`: {ID: "0-A", New: true},
		`{"id":"0-A","deadline_at":"2027-01-15T08:00:00Z","new":false,"error":"the queue is full"}`: {ID: "0-A", Deadline: at, Err: errors.New("the queue is full")},
	} {
		if got, err := json.Marshal(r); string(got) != want || err != nil {
			t.Errorf("%+v is %s, %v, want %s", r, got, err, want)
		}
	}
}

// Every field has a name in JSON, and reads as what it was.
func TestARecordInJSON(t *testing.T) {
	var r queue.Record
	fields := reflect.ValueOf(&r).Elem()
	for i := range fields.NumField() {
		f, typ := fields.Field(i), fields.Type().Field(i)
		if tag := typ.Tag.Get("json"); tag == "" || strings.ToLower(tag) != tag {
			t.Errorf("%s has the tag %q, want a name like created_at", typ.Name, tag)
		}
		switch f.Interface().(type) {
		case time.Time:
			f.Set(reflect.ValueOf(time.UnixMilli(1_800_000_000_000 + int64(i)).UTC()))
		case []byte:
			f.SetBytes([]byte{0, 255})
		case queue.Node:
			f.Set(reflect.ValueOf(queue.Node{Definition: "d", Version: "1", Name: "n"}))
		case map[string]string:
			if typ.Name != "Fields" {
				f.Set(reflect.ValueOf(map[string]string{"a": "b"}))
			}
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString(typ.Name)
			case reflect.Bool:
				f.SetBool(true)
			default:
				f.SetInt(int64(i))
			}
		}
	}
	text, err := json.Marshal(r)
	var again queue.Record
	if err != nil || json.Unmarshal(text, &again) != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%s\nreads as %+v, %v, want %+v", text, again, err, r)
	}
	if text, err := json.Marshal(queue.Record{ID: "0-A", Kind: "k", Queue: "q", Status: queue.Pending}); err != nil ||
		string(text) != `{"id":"0-A","kind":"k","queue":"q","status":"PENDING","priority":0,"created_at":"0001-01-01T00:00:00Z","epoch":0}` {
		t.Errorf("a record without most fields is %s, %v", text, err)
	}
}
