return {'latest', latest()}
