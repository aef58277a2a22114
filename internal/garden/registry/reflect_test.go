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

// part is the field of an object, invalid if it has none of that name.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// touch changes something in a part of an object, and says whether the object has that part.
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

// fill gives every string a value, and every pointer and list something to hold it.
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
