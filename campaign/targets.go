package campaign

import (
	"context"
	"fmt"
	"path/filepath"

	"netsplit/model"
	"netsplit/sut"
)

// uploads are the targets that clients sent.
func (s *Service) uploads() sut.Uploads {
	return sut.Uploads{Dir: filepath.Join(s.cfg.RunsDir, "targets")}
}

// named is what a campaign's target is called from now on. A client of a daemon
// gives names only: what it is given a path of is read by root. In one process
// with us that is the user himself.
func (s *Service) named(target string) (string, error) {
	if target == "" {
		return "", nil
	}
	name, err := s.nameOf(target)
	if err != nil {
		return "", fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return name, nil
}

func (s *Service) nameOf(target string) (string, error) {
	if s.cfg.InProcess {
		return sut.Absolute(target), nil
	}
	return s.uploads().Named(target)
}

// keep keeps a target that the user of this process names by path, as it is now, and
// returns what it is kept as; "" for any other, and for what is too large to be kept or has
// mistakes, which load tells. Of what is not kept a replay takes the present files.
func (s *Service) keep(target string) string {
	if !s.cfg.InProcess || !filepath.IsAbs(target) {
		return ""
	}
	archive, release, err := sut.Pack(target)
	if err != nil {
		return ""
	}
	s.uploading.Lock()
	defer s.uploading.Unlock()
	_, ref, err := s.uploads().Put(archive)
	if err != nil {
		return ""
	}
	return sut.At(ref, release)
}

// load loads the target of a campaign: what was kept of it where it was named by path.
// A path is opened only in the process of a user, who could have named it: a daemon may
// have the store of another's.
func (s *Service) load(spec model.CampaignSpec) (*model.Target, string, error) {
	if spec.Kept != "" {
		return s.uploads().Load(spec.Kept)
	}
	if filepath.IsAbs(spec.Target) && !s.cfg.InProcess {
		return nil, "", fmt.Errorf("target %s was named by its path, its files were not kept, and a daemon opens no path: start a campaign on it (netsplit campaign PATH)", spec.Target)
	}
	return s.uploads().Load(spec.Target)
}

// otherNow says that the files of a target that was named by path are not those that
// were kept; "" if they are, or where they cannot be read.
func (s *Service) otherNow(spec model.CampaignSpec) string {
	if spec.Kept == "" || !s.cfg.InProcess {
		return ""
	}
	archive, _, err := sut.Pack(spec.Target)
	if err != nil {
		return fmt.Sprintf("%s cannot be read any more (%v); the target is the one that was kept, %s", spec.Target, err, spec.Kept)
	}
	if sut.Holds(spec.Kept, archive) {
		return ""
	}
	return fmt.Sprintf("%s changed since; the target is the one that was kept, %s", spec.Target, spec.Kept)
}

// Targets lists what campaigns can name: what comes with netsplit first.
func (s *Service) Targets(ctx context.Context) ([]model.KnownTarget, error) {
	var out []model.KnownTarget
	for _, name := range sut.Known() {
		out = append(out, model.KnownTarget{Name: name})
	}
	for _, u := range s.uploads().List() {
		out = append(out, model.KnownTarget{Name: u.Name, Uploaded: true, Newest: u.Newest})
	}
	return out, nil
}

// Target is a target that campaigns can name.
func (s *Service) Target(ctx context.Context, ref string) (*model.Target, error) {
	name, err := s.uploads().Named(ref)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrNotFound, err)
	}
	t, _, err := s.uploads().Load(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrInvalid, err)
	}
	return t, nil
}

// UploadTarget keeps a target that came as a tar archive.
func (s *Service) UploadTarget(ctx context.Context, archive []byte) (model.KnownTarget, error) {
	s.uploading.Lock()
	defer s.uploading.Unlock()
	t, ref, err := s.uploads().Put(archive)
	if err != nil {
		return model.KnownTarget{}, err
	}
	s.log.Info("a target was uploaded", "target", ref, "title", t.Title)
	return model.KnownTarget{Name: ref, Uploaded: true, Newest: true}, nil
}

// DeleteTarget deletes a target that was uploaded, unless a campaign that has not
// ended is on it. A replay of a run on it takes the same files, uploaded again.
func (s *Service) DeleteTarget(ctx context.Context, ref string) error {
	s.uploading.Lock()
	defer s.uploading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, j := range s.jobs {
		if sut.At(j.c.Spec.Target, "") == ref || sut.At(j.c.Spec.Kept, "") == ref {
			return fmt.Errorf("%w: campaign %s is on target %s: wait for its end or cancel it", model.ErrConflict, id, ref)
		}
	}
	if err := s.uploads().Delete(ref); err != nil {
		return err
	}
	s.log.Info("an uploaded target was deleted", "target", ref)
	return nil
}
