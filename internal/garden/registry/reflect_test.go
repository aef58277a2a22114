package registry

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func metaOf(obj runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return accessor
}

// part returns a field of an object. The value is invalid if the object has no such field.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// touch changes a value in a field of an object, and reports whether the object has the field.
func touch(t *testing.T, obj runtime.Object, name string) bool {
	t.Helper()
	value := part(obj, name)
	if !value.IsValid() {
		return false
	}
	if !change(value) {
		t.Fatalf("nothing in %s of a %T can be changed", name, obj)
	}
	return true
}

// change changes the first simple value that it finds.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Pointer:
		changed := reflect.New(v.Type().Elem()) // not in the old object, which may share it
		if !v.IsNil() {
			changed.Elem().Set(v.Elem())
		}
		if !change(changed.Elem()) {
			return false
		}
		v.Set(changed)
	case reflect.Slice:
		item := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.Append(v.Slice3(0, v.Len(), v.Len()), item))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && change(v.Field(i)) {
				return true
			}
		}
		return false
	default:
		return false
	}
	return true
}

// fill sets every string, every pointer, and one element of every list.
func fill(v reflect.Value, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("v")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	}
}
