package resource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// None and Unknown are what a column says that has nothing to say.
const (
	None    = "<none>"
	Unknown = "<unknown>"
	Pending = "<pending>"
)

var metaDoc = metav1.ObjectMeta{}.SwaggerDoc()

// tableConvertor makes the tables that kubectl prints: Name, the definition's columns, Age.
type tableConvertor[T Object] struct{ def *Definition[T] }

func (c tableConvertor[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if m, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion, table.Continue, table.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	} else if m, err := meta.CommonAccessor(obj); err == nil {
		table.ResourceVersion = m.GetResourceVersion()
	}
	if opt, ok := options.(*metav1.TableOptions); !ok || !opt.NoHeaders {
		table.ColumnDefinitions = c.header()
	}
	rows, err := metatable.MetaToTableRow(obj, func(obj runtime.Object, _ metav1.Object, _, _ string) ([]any, error) {
		typed, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("a %T is not one of %s", obj, c.def.Resource)
		}
		cells := []any{typed.GetName()}
		for _, column := range c.def.Columns {
			cells = append(cells, column.Value(typed))
		}
		return append(cells, metatable.ConvertToHumanReadableDateType(typed.GetCreationTimestamp())), nil
	})
	table.Rows = rows
	return table, err
}

func (c tableConvertor[T]) header() []metav1.TableColumnDefinition {
	header := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: metaDoc["name"]}}
	for _, column := range c.def.Columns {
		definition := metav1.TableColumnDefinition{Name: column.Name, Type: column.Type, Description: column.About}
		if definition.Type == "" {
			definition.Type = "string"
		}
		if column.Wide {
			definition.Priority = 1
		}
		header = append(header, definition)
	}
	return append(header, metav1.TableColumnDefinition{Name: "Age", Type: "date", Description: metaDoc["creationTimestamp"]})
}
