package queue

import (
	"reflect"
	"testing"
	"time"
)

// A field that sameShape does not compare would get the value of another task of the same call.
func TestTasksOfOneShapeDifferOnlyInIDAndPayload(t *testing.T) {
	checked := 0
	var check func(name string, field func(*Task) reflect.Value)
	check = func(name string, field func(*Task) reflect.Value) {
		v := field(new(Task))
		if _, instant := v.Interface().(time.Time); v.Kind() == reflect.Struct && !instant {
			for i := range v.NumField() {
				check(name+"."+v.Type().Field(i).Name, func(t *Task) reflect.Value { return field(t).Field(i) })
			}
			return
		}
		one, other := Task{Kind: "k"}, Task{Kind: "k"}
		field(&other).Set(notZero(t, v.Type()))
		if got, want := one.sameShape(&other), name == "ID" || name == "Name" || name == "Payload"; got != want {
			t.Errorf("two tasks differ in %s: sameShape = %v, want %v", name, got, want)
		}
		checked++
	}
	for i := range reflect.TypeFor[Task]().NumField() {
		check(reflect.TypeFor[Task]().Field(i).Name, func(t *Task) reflect.Value { return reflect.ValueOf(t).Elem().Field(i) })
	}
	if checked < 35 {
		t.Errorf("%d fields were checked, want all", checked)
	}
}

// notZero returns a value of a type that is not its zero value.
func notZero(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(of).Elem()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.SetBytes([]byte("x"))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.UnixMilli(1)))
	default:
		t.Fatalf("no value of type %v", of)
	}
	return v
}

// A root task has an id that was made for it. A child must not share its shape: only children have
// the identity of the call.
func TestAChildHasAShapeOfItsOwn(t *testing.T) {
	s := shapes{call: "c"}
	for _, task := range []*Task{{Kind: "k"}, {Kind: "k", ID: "0-a.1"}, {Kind: "k"}, {Kind: "k", ID: "0-a.2"}} {
		s.add(task, "id")
	}
	var got []any
	for i := 0; i < len(s.rows); i += 3 {
		got = append(got, s.rows[i])
	}
	if want := []any{1, 2, 1, 2}; !reflect.DeepEqual(got, want) {
		t.Errorf("the shapes are %v, want %v", got, want)
	}
}
