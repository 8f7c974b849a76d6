package campaign

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"netsplit/internal/storetest"
	"netsplit/model"
)

// TestAClientOfADaemonNamesNoPath: whatever is at the path, it is not opened and
// not quoted. In the user's own process it is.
func TestAClientOfADaemonNamesNoPath(t *testing.T) {
	s := &Service{cfg: Config{RunsDir: t.TempDir()}, store: storetest.New(t)}
	file := filepath.Join(t.TempDir(), "target.yaml")
	write(t, file, "secret: yes\n")
	for _, spec := range []model.CampaignSpec{{Target: file}, {Target: filepath.Dir(file)}, {Target: file + "@1"}, {Target: "./target.yaml"}, {Target: file, Replay: "c-1-r0001"}} {
		_, err := s.CreateCampaign(t.Context(), spec)
		if !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "POST /v1/targets") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), file) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	s.cfg.InProcess = true
	if _, err := s.CreateCampaign(t.Context(), model.CampaignSpec{Target: file}); err == nil || !strings.Contains(err.Error(), "unknown key") {
		t.Errorf("the user's own file: %v", err)
	}
}
