//! Wrong stories.
