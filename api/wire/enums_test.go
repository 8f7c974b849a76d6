package wire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"netsplit/model"
)

// TestTheFaultsOfASearchAreThoseOfTheModel: a kind that the model gains is offered.
func TestTheFaultsOfASearchAreThoseOfTheModel(t *testing.T) {
	f, ok := reflect.TypeFor[CampaignSpec]().FieldByName("Faults")
	want := strings.ReplaceAll(strings.Trim(fmt.Sprint(model.SearchedFaults()), "[]"), " ", ",")
	if got := f.Tag.Get("enum"); !ok || got != want || f.Tag.Get("maxItems") != fmt.Sprint(len(model.SearchedFaults())) {
		t.Errorf("the enum of faults is %s, want %s", got, want)
	}
	f, _ = reflect.TypeFor[PointsQuery]().FieldByName("Faults")
	if want, got := strings.ReplaceAll(strings.Trim(fmt.Sprint(model.PointFaultKinds()), "[]"), " ", ","), f.Tag.Get("enum"); got != want {
		t.Errorf("the enum of faults at points is %s, want %s", got, want)
	}
	f, _ = reflect.TypeFor[MapOutcome]().FieldByName("Kind")
	if want, got := strings.ReplaceAll(strings.Trim(fmt.Sprint(model.MetKinds()), "[]"), " ", ","), f.Tag.Get("enum"); got != want {
		t.Errorf("the enum of kinds of a partition map is %s, want %s", got, want)
	}
}
