"""CodeWhale as a server of the Model Context Protocol, handed a client. Its official library is loaded here alone."""
