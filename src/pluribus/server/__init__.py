"""What pluribus serves over HTTP; one file per service, and `listening`, the door of each."""
