package resource

import (
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTakeOperation(t *testing.T) {
	for value, taken := range map[string]bool{"a": true, "b": true, "a;b": false, "": false, "c": false} {
		obj := &metav1.ObjectMeta{Annotations: map[string]string{"gardener.cloud/operation": value, "other": "x"}}
		if ConsumeOperationAnnotation(obj, "a", "b") != taken {
			t.Errorf("%q is taken: %t", value, !taken)
		}
		if _, left := obj.Annotations["gardener.cloud/operation"]; left == taken || obj.Annotations["other"] != "x" {
			t.Errorf("%q leaves %v", value, obj.Annotations)
		}
	}
	if ConsumeOperationAnnotation(&metav1.ObjectMeta{}, "") {
		t.Error("taken from nothing")
	}
}

// TestEmptyDefinition checks that all functions of a Definition are optional.
func TestEmptyDefinition(t *testing.T) {
	def := Definition[*gardencore.Quota]{
		Resource: gardencore.Resource("quotas"), Kind: "Quota", Versions: []string{"v1beta1"},
	}
	s, ctx, quota := newStrategy(&def), t.Context(), &gardencore.Quota{}
	s.PrepareForCreate(ctx, quota)
	s.PrepareForUpdate(ctx, quota, quota)
	s.Canonicalize(quota)
	if errs := append(s.Validate(ctx, quota), s.ValidateUpdate(ctx, quota, quota)...); len(errs) > 0 {
		t.Error(errs)
	}
	if warnings := append(s.WarningsOnCreate(ctx, quota), s.WarningsOnUpdate(ctx, quota, quota)...); len(warnings) > 0 {
		t.Error(warnings)
	}
	if s.GetResetFields() != nil || quota.Generation != 0 {
		t.Errorf("resets %v, generation %d", s.GetResetFields(), quota.Generation)
	}
}

func TestDefinitionWithoutVersions(t *testing.T) {
	if _, _, err := NewStores(Definition[*gardencore.Quota]{Resource: gardencore.Resource("quotas")}, nil); err == nil {
		t.Error("no error")
	}
	b := NewBuilder(nil)
	if store := Add(b, Definition[*gardencore.Quota]{Resource: gardencore.Resource("quotas")}); store != nil {
		t.Errorf("store %v", store)
	}
	if _, err := b.Result(); err == nil {
		t.Error("the builder forgets errors")
	}
}

// TestWarningsTellCreationFromUpdate: old is nil for an object that is created.
func TestWarningsTellCreationFromUpdate(t *testing.T) {
	def := Definition[*gardencore.Quota]{Warnings: func(_, old *gardencore.Quota) []string {
		if old == nil {
			return []string{"created"}
		}
		return []string{"updated"}
	}}
	s, quota := newStrategy(&def), &gardencore.Quota{}
	if s.WarningsOnCreate(t.Context(), quota)[0] != "created" || s.WarningsOnUpdate(t.Context(), quota, quota)[0] != "updated" {
		t.Error("mixed up")
	}
}

func TestTable(t *testing.T) {
	def := Definition[*gardencore.Quota]{Resource: gardencore.Resource("quotas"), Columns: []Column[*gardencore.Quota]{
		{Name: "Wide", Wide: true, Value: func(q *gardencore.Quota) any { return "w" + q.Name }},
		Age[*gardencore.Quota](),
		{Name: "Last", Type: "integer", Value: func(*gardencore.Quota) any { return int64(1) }},
	}}
	c := newTableConvertor(&def)
	left := int64(3)
	list := &gardencore.QuotaList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "c", RemainingItemCount: &left},
		Items: []gardencore.Quota{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}}
	table, err := c.ConvertToTable(t.Context(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if table.ResourceVersion != "7" || table.Continue != "c" || *table.RemainingItemCount != 3 {
		t.Errorf("list %+v", table.ListMeta)
	}
	header := table.ColumnDefinitions
	if len(header) != 4 || header[0].Name != "Name" || header[0].Format != "name" || header[1].Priority != 1 ||
		header[2].Name != "Age" || header[2].Type != "date" || header[3].Type != "integer" {
		t.Errorf("header %+v", header)
	}
	if len(table.Rows) != 2 || table.Rows[1].Cells[0] != "b" || table.Rows[1].Cells[1] != "wb" || table.Rows[1].Cells[2] != "<unknown>" {
		t.Errorf("rows %+v", table.Rows)
	}
	if _, err := c.ConvertToTable(t.Context(), &gardencore.Shoot{}, nil); err == nil {
		t.Error("a Shoot is a Quota")
	}
}
