"""What pluribus serves over HTTP; one file per service."""
